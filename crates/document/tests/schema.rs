//! The schema that is kept is that of the types.

#[test]
fn the_kept_schema_is_up_to_date() {
    let kept = include_str!("../schema.json");
    let made = bakeoff_document::schema::text().expect("a schema");
    assert!(
        kept == made,
        "cargo run -p bakeoff-document --features schema --example schema > crates/document/schema.json"
    );
}
