"""The quality report: figures from the ledger, and a static site that shows them."""
