// Package beacon gives every block a value that no party can know in advance or choose: the digest of a signature over
// the block before, with a key that a group of validators shares (protocol/threshold). Votes carry the shares of the
// signature, and the signature does not depend on which members signed.
//
// The votes for block h make the beacon of block h+1. Validators make the key themselves, in their votes, and make a
// new key when the validators change. Before the first key exists, the beacon combines the outputs of a verifiable
// random function (RFC 9381, ECVRF-EDWARDS25519-SHA512-ELL2). A proposer may then leave out the outputs of up to a
// third of the voting power, and so choose among beacons. On a chain with one validator, that validator can compute
// every beacon in advance. The package draws nothing from the beacon; that is protocol/audit and protocol/run.
package beacon

import (
	"encoding/binary"
	"errors"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/ecvrf"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
)

// Name of the module, its store and its codespace.
const Name = "beacon"

// Errors of the module.
var (
	ErrNotValidator = errors.New("beacon: not the operator of a validator")
	ErrKey          = errors.New("beacon: not a VRF key")
	ErrNoBeacon     = errors.New("beacon: no value is kept for this height")
	ErrParams       = errors.New("beacon: invalid parameters")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: ErrNotValidator, Fix: "Create a validator with this account first."},
	{Code: 3, Rule: ErrKey, Fix: "Send the 32 bytes of an Ed25519 public key."},
	{Code: 4, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 5, Rule: ErrParams, Fix: "Correct the parameters of the proposal."},
}}

// Key holds the VRF keys of a validator. A new key counts two blocks after it was set, so that it is fixed before the
// beacon that its input depends on is known.
type Key struct {
	Public []byte `cbor:"1,keyasint,omitempty"`
	Next   []byte `cbor:"2,keyasint,omitempty"`
	From   int64  `cbor:"3,keyasint"` // height of the first vote under Next
}

// At returns the key for the votes of a height; nil if there is none.
func (k Key) At(height int64) []byte {
	if height >= k.From {
		return k.Next
	}
	return k.Public
}

// Set returns the record after a message in the block of a height sets a key.
func (k Key) Set(public []byte, height int64) Key {
	return Key{Public: k.At(height), Next: public, From: height + 2}
}

// Alpha is the input of the VRF for the votes of a height: the chain, the height, and the beacon of the block before.
func Alpha(chainID string, height int64, previous canon.Digest) []byte {
	d := canon.Sum("starling/beacon/alpha/1", []byte(chainID), number(height), previous[:])
	return d[:]
}

// Prove returns the proof of a validator's output, 80 bytes, which its vote carries.
func Prove(private ed25519.PrivateKey, alpha []byte) []byte { return ecvrf.Prove(private, alpha) }

// Verify returns the output (64 bytes) that a proof shows, and whether the proof is valid.
func Verify(public, alpha, proof []byte) ([]byte, bool) {
	if len(public) != ed25519.PublicKeySize || len(proof) != ecvrf.ProofSize {
		return nil, false
	}
	ok, output := ecvrf.Verify(public, proof, alpha)
	return output, ok
}

// Output is the contribution of one validator to a beacon.
type Output struct {
	Validator []byte // consensus address
	Beta      []byte // 64 bytes
}

// Combine returns the beacon of a block from the outputs, in the order of the validators in the commit; the zero digest
// without outputs.
func Combine(chainID string, height int64, previous canon.Digest, outputs []Output) canon.Digest {
	if len(outputs) == 0 {
		return canon.Digest{}
	}
	parts := [][]byte{[]byte(chainID), number(height), previous[:]}
	for _, o := range outputs {
		parts = append(parts, o.Validator, o.Beta)
	}
	return canon.Sum("starling/beacon/1", parts...)
}

func number(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
