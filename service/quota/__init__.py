"""What keys may use and have used: rates, quotas, usage."""
