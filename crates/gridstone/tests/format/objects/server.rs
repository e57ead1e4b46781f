//! Promise: deletions go out by the thousand, counted on the way to a real server, if `GRIDSTONE_TEST_BUCKET` names a bucket of one (S3 alone).

use gridstone::base::Entropy;
use gridstone::runtime::SystemEntropy;
use gridstone::storage::{Durability, StorageOptions, open_uri};
use std::collections::BTreeMap;
use std::env::var;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Passes on what is sent to `server`, and counts in it how often `word` occurs.
fn overheard(server: String, word: &'static str) -> (String, Arc<AtomicUsize>) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(AtomicUsize::new(0)));
    let (own, counted) = (format!("http://{}", listener.local_addr().unwrap()), Arc::clone(&heard));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(len @ 1..) = client.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..len]);
                    heard.fetch_add(text.matches(word).count(), Ordering::SeqCst);
                    if server.write_all(&buffer[..len]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (own, counted)
}

#[test]
fn a_server_deletes_by_the_thousand() {
    let Ok(bucket) = var("GRIDSTONE_TEST_BUCKET") else {
        println!("skipped: GRIDSTONE_TEST_BUCKET names no bucket; cargo xtask s3 -- COMMAND starts a server");
        return;
    };
    let given = var("GRIDSTONE_TEST_BUCKET_OPTIONS").unwrap();
    let options = given.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let mut options: BTreeMap<String, String> = options.map(|(name, value)| (name.into(), value.into())).collect();
    let server = options.get("endpoint_url").and_then(|url| url.strip_prefix("http://")).map(str::to_owned);
    let Some(server) = server.filter(|_| bucket.starts_with("s3://")) else { return };
    let (own, heard) = overheard(server.trim_end_matches('/').to_owned(), "?delete");
    options.insert("endpoint_url".to_owned(), own);
    let place = format!("{bucket}/rust/{}", SystemEntropy.id());
    let storage = open_uri(&place, Durability::Full, &StorageOptions::new(options).unwrap()).unwrap();
    let names: Vec<String> = (0..2_500).map(|n| format!("_data/{n}.frag")).collect();
    names.iter().step_by(50).for_each(|name| storage.put(name, b"x").unwrap());
    storage.delete_each(&names).unwrap();
    assert_eq!(heard.load(Ordering::SeqCst), 3);
    assert!(storage.list("_data").unwrap().is_empty());
}
