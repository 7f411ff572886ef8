package evidence

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/exchange/update"
)

// The evidence of each kind of question, as a party encodes it. Lists of roots are in the order in which
// train.StateRoot and train.CheckpointRoot take them.

// Start answers for the state that a unit starts from, and for an Input that the unit began with.
type Start struct {
	Checkpoint []canon.Digest `cbor:"1,keyasint"` // roots of its tensors
	// roots of the carried state of the unit, if it begins with one
	From []canon.Digest `cbor:"2,keyasint,omitempty"`
}

// Binding answers for the state that a step leads to.
type Binding struct {
	Outputs []canon.Digest `cbor:"1,keyasint"` // roots of the outputs of all operators
}

// State answers for an Input that is a tensor of the state, and for a carried moment.
type State struct {
	State []canon.Digest `cbor:"1,keyasint"` // roots of the tensors of the agreed state
}

// Frozen answers for an Input that is not trained.
type Frozen struct {
	Frozen []canon.Digest `cbor:"1,keyasint"` // roots of the frozen tensors
}

// Tokens answers for a tile of the Input of tokens.
type Tokens struct {
	Before   Progress         `cbor:"1,keyasint"`
	Manifest []byte           `cbor:"2,keyasint"`
	Proofs   []data.LeafProof `cbor:"3,keyasint"` // of the shards that the tile lies in
}

// Operator answers for a part of the output of every other operator.
type Operator struct {
	Before   Progress  `cbor:"1,keyasint"`
	Operands []Operand `cbor:"2,keyasint,omitempty"` // in the order in which division.Collect asks for them
}

// Operand is what a part needs of the output of an earlier operator.
type Operand struct {
	Shown LeafProof   `cbor:"1,keyasint"`
	Proof canon.Proof `cbor:"2,keyasint"` // of the output's root in the asserter's trace
}

// Update shows what a part of the payload of a parameter is made from.
type Update struct {
	Before     Progress       `cbor:"1,keyasint"`
	Checkpoint []canon.Digest `cbor:"2,keyasint"` // roots of the tensors of the checkpoint
	State      []canon.Digest `cbor:"3,keyasint"` // and of the last state
	Base       LeafProof      `cbor:"4,keyasint"` // of the parameter in the checkpoint
	End        LeafProof      `cbor:"5,keyasint"` // and in the last state
	origin
}

// origin shows the carried state of a unit, for a part of a parameter. It is empty if there is none.
type origin struct {
	From []canon.Digest `cbor:"6,keyasint,omitempty"` // roots of its tensors
	Left LeafProof      `cbor:"7,keyasint,omitzero"`  // of the residual of the parameter
}

// Begin shows what a tile of a parameter that a replica begins with is made from.
type Begin struct {
	Before Progress       `cbor:"1,keyasint"`
	State  []canon.Digest `cbor:"2,keyasint"` // roots that the agreed state is named by
	Base   LeafProof      `cbor:"3,keyasint"` // of the parameter in the checkpoint
	Left   LeafProof      `cbor:"4,keyasint"` // and in the carried state
}

// Carry shows the sources of a part of the carried state of a parameter.
type Carry struct {
	Sources Update           `cbor:"1,keyasint"`
	Update  []canon.Digest   `cbor:"2,keyasint"` // roots of the payloads of the update
	Sent    update.LeafProof `cbor:"3,keyasint"` // of the one of the parameter
}

// Combination shows one tile of one tensor of the next checkpoint, and everything that it is made from.
type Combination struct {
	Tensor  uint32         `cbor:"1,keyasint"` // of the checkpoint, in the order of train.CheckpointRoot
	Tile    uint32         `cbor:"2,keyasint"` // of codec.Tile elements
	Base    []canon.Digest `cbor:"3,keyasint"` // roots of the tensors of the base
	Next    []canon.Digest `cbor:"4,keyasint"` // and of the attested parameters
	Before  []LeafProof    `cbor:"5,keyasint"` // of the parameter in the base, then of each tensor of its outer state
	After   LeafProof      `cbor:"6,keyasint"` // of the tensor in what is attested
	Updates []Sent         `cbor:"7,keyasint"` // of every update, the parameter
}

// Sent is the part of an update that a tile is made from.
type Sent struct {
	Proof update.LeafProof `cbor:"1,keyasint"`
	Cover []canon.Digest   `cbor:"2,keyasint"` // of the payload in update.Update.Tree
}
