import assert from 'node:assert/strict';
import test from 'node:test';
import { total } from '../src/total.js';

test('halves are rounded up', () => assert.equal(total(1, 5, 10), 5));
