// Package image runs the built image as its users do: by hand, as an Actions container, as a GitLab job.
package image
