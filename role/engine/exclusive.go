package engine

import (
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
)

// exclusive is an oracle that computes only while nothing else does.
type exclusive struct {
	lock   sync.Locker
	oracle dispute.Oracle
}

// Steps implements dispute.Oracle.
func (x *exclusive) Steps(after []uint64) ([]canon.Digest, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Steps(after)
}

// Trace implements dispute.Oracle.
func (x *exclusive) Trace(step uint32) (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Trace(step)
}

// Parts implements dispute.Oracle.
func (x *exclusive) Parts(c dispute.Claim) uint64 { return x.oracle.Parts(c) }

// Partial implements dispute.Oracle.
func (x *exclusive) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Partial(c, after)
}

// Result implements dispute.Oracle.
func (x *exclusive) Result(k dispute.Kind) (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Result(k)
}

// Leaf implements dispute.Oracle.
func (x *exclusive) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Leaf(c, prove)
}
