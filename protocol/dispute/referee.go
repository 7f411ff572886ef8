package dispute

import "github.com/starling-network/starling/canon"

// Kind says what is recomputed at the end of a dispute.
type Kind string

// The kinds of last questions. The asserter is right if what is claimed is what follows from what is agreed.
const (
	// the state After follows from the checkpoint Base, and from the state From that was handed on
	Start Kind = "start"
	// part Part of a tile of operator Index follows from the operators before it in Trace and from the state Prior
	Tile    Kind = "tile"
	Binding Kind = "binding" // the state After follows from the outputs of all operators, Trace
	// part Part of the state that parameter Index hands on follows from the same, the state From, and what is sent of
	// it, Update
	Carry Kind = "carry"
	// part Part of the payload of parameter Index follows from the checkpoint Base, the last state, Prior, and the
	// state From that was handed on; or, if Output is zero, cannot be made since an element of it is not finite
	Update Kind = "update"
)

// Claim is the one question that is left of a dispute.
type Claim struct {
	Kind        Kind
	Round, Unit uint32
	Base        canon.Digest // root of the checkpoint that the round starts from
	Step        uint32       // inner step of the unit, from 0; for Update, the number of steps of the unit
	Prior       canon.Digest // inner state root that both agree on: Tile, Update
	After       canon.Digest // inner state root that the asserter claims: Start, Binding
	Trace       canon.Digest // root of the asserter's tree: Tile, Binding
	Index       uint32       // of the operator or the parameter
	Part        uint64       // of the output or the payload
	Before      canon.Digest // what both agree is there before the part; zero before the first
	From        canon.Digest // root of what the unit starts from beside Base; zero: nothing
	Update      canon.Digest // root of the update, which both agree on: Carry
	// what the asserter claims is there after it; after the last part the output's or the payload's root
	Output canon.Digest
}

// Ruling is the answer of a referee.
type Ruling struct {
	Right    bool         // the asserter is
	Computed canon.Digest // what follows from what is agreed; zero: nothing, because it cannot be made or is not finite
}

// Referee answers the last question from the payload that the challenger brought. It must be deterministic. An error
// says that the payload does not allow an answer, and the challenger loses.
type Referee interface {
	// Parts is the number of parts in which the output of the operator of a claim is made, for Tile, or the payload of its
	// parameter, for Update, or what that hands on, for Carry.
	Parts(c Claim) uint64
	// Judge answers a question.
	Judge(c Claim, payload []byte) (Ruling, error)
}
