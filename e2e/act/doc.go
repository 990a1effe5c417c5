// Package act runs the shipped actions and templates under nektos/act, a second reader of workflows beside GitHub's own.
package act
