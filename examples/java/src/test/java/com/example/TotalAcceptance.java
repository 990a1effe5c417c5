package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class TotalAcceptance {
    @Test
    void halvesAreRoundedUp() {
        assertEquals(5, Total.of(1, 5, 10));
    }
}
