#[test]
fn halves_are_rounded_up() {
    assert_eq!(shop::total(1, 5, 10), 5);
}
