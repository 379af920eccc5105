//! Prints what a reply on standard input is read as.
fn main() {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::stdin(), &mut text).unwrap();
    let formats = std::env::args().nth(1).map(|f| vec![f]);
    let parser = turnwarden_extract::Parser::new(turnwarden_extract::Options { formats, ..Default::default() }).unwrap();
    println!("{:#?}", parser.parse(&text));
}
