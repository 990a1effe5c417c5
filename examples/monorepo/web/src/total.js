// The price of n pieces at cents each, less percent, rounded half up to the cent.
export const total = (n, cents, percent) => Math.floor((n * cents * (100 - percent) + 50) / 100);
