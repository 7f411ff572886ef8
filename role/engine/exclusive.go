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
func (x *exclusive) Steps(after []uint32) ([]canon.Digest, error) {
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

// Tiles implements dispute.Oracle.
func (x *exclusive) Tiles(operator uint32) uint32 { return x.oracle.Tiles(operator) }

// Output implements dispute.Oracle.
func (x *exclusive) Output(step, operator uint32) (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Output(step, operator)
}

// Update implements dispute.Oracle.
func (x *exclusive) Update() (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Update()
}

// Leaf implements dispute.Oracle.
func (x *exclusive) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Leaf(c, prove)
}
