// Package archtest owns the tests about the repository itself: which package may know which, what every
// document lists, and that nothing of one machine is committed. It must never hold product code.
package archtest
