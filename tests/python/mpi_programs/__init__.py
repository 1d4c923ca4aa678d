"""Programs that the tests run on several ranks, each with many cases in one launch."""
