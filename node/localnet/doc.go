// Package localnet is a network in one process: a validator, workers, verifiers and a consumer on the loopback, each
// with keys and a store of its own. They share nothing but the chain and the wire.
package localnet
