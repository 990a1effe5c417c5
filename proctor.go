// Package proctor holds the action's metadata, which has to lie at the top of the repository.
package proctor

import _ "embed"

// ActionMetadata is action.yml.
//
//go:embed action.yml
var ActionMetadata []byte
