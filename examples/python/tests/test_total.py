import unittest

from shop import total


class Total(unittest.TestCase):
    def test_adds_up(self):
        self.assertEqual(total(2, 150, 0), 300)
