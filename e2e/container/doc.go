// Package container runs confinement, and the real agent under it, inside containers with the profiles that CI jobs get.
package container
