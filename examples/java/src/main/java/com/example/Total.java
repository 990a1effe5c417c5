package com.example;

/** Adds orders up. */
public final class Total {
    private Total() {}

    /** The price of n pieces at cents each, less percent, rounded half up to the cent. */
    public static int of(int n, int cents, int percent) {
        return (n * cents * (100 - percent) + 50) / 100;
    }
}
