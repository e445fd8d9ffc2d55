"""The book's laboratory: what notebooks need and the package does not."""
