// Package api holds the drift guard: tests that check our GitHub client's requests and the test
// forge's answers against GitHub's own API description, so that neither can drift from the real one.
// Run them with: npm ci --ignore-scripts && go test -tags e2e . (in this folder), or make e2e.
package api
