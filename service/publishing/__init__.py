"""From a drop to a release that is live: publish, warm, retire."""
