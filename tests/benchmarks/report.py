"""Print what has been measured: tables of the CPU, and of each GPU there is a record of."""

from pathlib import Path

from posenc.lab import measured


def main() -> None:
    """Print every stored table."""
    found = measured.tables(Path(__file__).parents[2] / "book" / "data")
    print("\n\n".join(map(str, found)))
    if all(table.title.startswith("CPU") for table in found):
        print("\nGPU: not measured (make gpu, on a machine with a CUDA device).")


if __name__ == "__main__":
    main()
