"""From a drop to a release that is live: publish, warm, retire; and the inbox, which does so by itself."""
