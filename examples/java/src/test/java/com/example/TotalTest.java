package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class TotalTest {
    @Test
    void addsUp() {
        assertEquals(300, Total.of(2, 150, 0));
    }
}
