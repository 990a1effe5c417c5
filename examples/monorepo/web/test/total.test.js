import assert from 'node:assert/strict';
import test from 'node:test';
import { total } from '../src/total.js';

test('adds up', () => assert.equal(total(2, 150, 0), 300));
