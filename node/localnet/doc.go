// Package localnet is a network in one process: a validator, workers, verifiers and a consumer on the loopback, each
// with keys and a store of its own. They talk through the chain and the wire alone, and what several of them have in
// memory alike is there once (hold.Shared).
package localnet
