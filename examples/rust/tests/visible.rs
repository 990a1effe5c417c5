#[test]
fn adds_up() {
    assert_eq!(shop::total(2, 150, 0), 300);
}
