"""The rules: pure functions from facts to findings; ``every`` lists them."""
