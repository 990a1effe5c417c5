import unittest

from shop import total


class Customer(unittest.TestCase):
    def test_halves_are_rounded_up(self):
        self.assertEqual(total(1, 5, 10), 5)
