//! What is asked in JSON: programs of the library, transfers alone, and what goes wrong by a seed.

use hyperslab_lab::simulate::{MACHINES, simulate_json};
use serde_json::{Value, json};

fn machine(name: &str) -> &'static str {
    MACHINES.iter().find(|machine| machine.0 == name).unwrap().1
}

fn array() -> Value {
    json!({ "shape": [64, 64], "mesh": [2, 2], "dims": ["block", "block"], "name": "rho" })
}

fn simulated(name: &str, stages: &Value, faults: Option<Value>) -> Result<Value, hyperslab::Error> {
    let spec = json!({ "machine": machine(name), "clients": 4, "stages": stages, "faults": faults });
    simulate_json(&spec.to_string(), &mut || false).map(|told| serde_json::from_str(&told).unwrap())
}

/// A program that opens a store, writes an array and a step, changes the array in place, reads, appends, and closes the store.
fn program() -> Value {
    let store = || json!({ "store": "run.zarr" });
    let write = || json!({ "write": true, "arrays": [array()], "store": "run.zarr" });
    let mut part = write();
    part["arrays"][0]["section"] = json!([[0, 1, 64, 1], [0, 1, 64, 1]]);
    let (mut read, mut append) = (write(), write());
    read["write"] = json!(false);
    append["append"] = json!(0);
    json!([
        { "begin": store() },
        { "transfer": write() },
        { "step": { "store": "run.zarr", "name": "s" } },
        { "transfer": write() },
        { "publish": store() },
        { "transfer": part },
        { "transfer": read },
        { "transfer": append },
        { "end": store() }
    ])
}

#[test]
fn a_program_of_the_library_is_told_part_by_part() {
    let told = simulated("lustre-like", &program(), None).unwrap();
    let parts: Vec<&str> =
        told["stages"].as_array().unwrap().iter().map(|part| part["what"].as_str().unwrap()).collect();
    let (write, read) = (["agree", "write", "agree"], ["agree", "read", "agree"]);
    let expected = [&["begin"][..], &write, &["step"], &write, &["publish"], &write, &read, &write, &["end"]].concat();
    assert_eq!(parts, expected);
    for transfer in told["transfers"].as_array().unwrap() {
        assert_eq!(transfer["bytes"], 64 * 64 * 8);
        assert!(transfer["moving_seconds"].as_f64() < transfer["seconds"].as_f64(), "{transfer}");
    }
    assert_eq!(simulated("lustre-like", &program(), None).unwrap(), told);
}

#[test]
fn a_raw_file_is_written_and_what_is_not_open_is_refused() {
    let store = json!({ "store": "out.raw" });
    let write = json!({ "write": true, "arrays": [array()], "store": "out.raw" });
    let stages = json!([{ "begin": store }, { "transfer": write }, { "end": store }]);
    assert_eq!(simulated("nas-sp2", &stages, None).unwrap()["transfers"][0]["bytes"], 64 * 64 * 8);
    let error = simulated("nas-sp2", &json!([{ "transfer": write }]), None).unwrap_err();
    assert!(error.message().contains("'out.raw' is not open"), "{error}");
}

/// As those of FLASH: 24 variables beside each other in memory, between halos, one after another in one file.
#[test]
fn arrays_that_are_interleaved_move_into_one_file() {
    let variable = |number: u64| {
        json!({
            "name": format!("variable{number}"), "shape": [16, 8, 8, 8], "mesh": [4], "dims": [[3, 4, 5, 4], "*", "*", "*"],
            "store": { "file": { "object": "checkpoint", "offset": number * 16 * 512 * 8 } },
            "local": { "halo": [0, 4, 4, 4], "interleave": 24 }
        })
    };
    for write in [true, false] {
        let transfer = json!({ "write": write, "arrays": (0..24).map(variable).collect::<Vec<Value>>() });
        let told = simulated("orion-like", &json!([{ "transfer": transfer }]), None).unwrap();
        assert_eq!(told["transfers"][0]["bytes"], 24 * 16 * 512 * 8);
    }
}

#[test]
fn a_transfer_alone_moves_as_that_of_a_call() {
    let moving = |alone: bool| {
        let transfer = json!({ "write": true, "arrays": [array()], "sync": true, "alone": alone });
        let told = simulated("nas-sp2", &json!([{ "transfer": transfer }]), None).unwrap();
        assert_eq!(told["stages"].as_array().unwrap().len(), 3);
        told["transfers"][0]["moving_seconds"].as_f64().unwrap()
    };
    let (alone, called) = (moving(true), moving(false));
    assert!((alone / called - 1.0).abs() < 0.02, "{alone} s alone, {called} s in a call");
}

#[test]
fn what_goes_wrong_is_told_with_how_each_rank_ended() {
    let faults = |seed: u64| {
        Some(json!({ "seed": seed, "arrival_seconds": 20.0, "progress_seconds": 10.0, "storage_seconds": 30.0 }))
    };
    let (mut through, mut failed) = (0, 0);
    for seed in 0..12 {
        let told = simulated("nvme-workstation", &program(), faults(seed)).unwrap();
        assert!(!told["faults"].as_array().unwrap().is_empty());
        let ends = told["ends"].as_array().unwrap();
        assert_eq!(ends.len(), 4);
        through += u32::from(ends.iter().all(|end| end == "through"));
        failed += u32::from(ends.iter().any(|end| end != "through" && end != "dead"));
        assert_eq!(simulated("nvme-workstation", &program(), faults(seed)).unwrap(), told);
    }
    assert!(through > 0 && failed > 0, "{through} came through, {failed} failed");
}
