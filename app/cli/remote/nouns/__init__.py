"""Nouns as the service has them: calls that commands stand for, and their answers as tables, trees and JSON."""
