"""Messages to rows of the change log; transactions settled; retries."""
