"""What is measured, by name: `encoders`, `rankers` (both under the protocol of `systems`) and `language_models`."""
