// Package shop adds orders up.
package shop

// Total is the price of n pieces at cents each, less percent, rounded half up to the cent.
func Total(n, cents, percent int) int { return (n*cents*(100-percent) + 50) / 100 }
