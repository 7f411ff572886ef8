package dispute

import "github.com/starling-network/starling/canon"

// Kind is the kind of the last question of a dispute.
type Kind string

// The kinds of last questions. The asserter is right if its claim follows from the agreed values.
const (
	// the state After follows from the checkpoint Base, and from the carried state From
	Start Kind = "start"
	// part Part of a tile of operator Index follows from the operators before it in Trace and from the state Prior
	Tile    Kind = "tile"
	Binding Kind = "binding" // the state After follows from the outputs of all operators, Trace
	// part Part of the carried state of parameter Index follows from the same, the state From, and the update that is
	// sent of it, Update
	Carry Kind = "carry"
	// part Part of the payload of parameter Index follows from the checkpoint Base, the last state, Prior, and the
	// carried state From; or, if Output is zero, cannot be computed since an element of it is not finite
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
	Before      canon.Digest // the agreed partial state before the part; zero before the first
	From        canon.Digest // root of the carried state that the unit starts from; zero: nothing
	Update      canon.Digest // root of the update, which both agree on: Carry
	// the asserter's claim after the part; after the last part the root of the output or the payload
	Output canon.Digest

	Links    []canon.Digest // Config.Links
	Segments []canon.Digest // Config.Segments: Carry
}

// Ruling is the answer of a referee.
type Ruling struct {
	Right bool // the asserter is
	// the digest that follows from the agreed values; zero: none, because it cannot be computed or is not finite
	Computed canon.Digest
}

// Referee answers the last question from the payload that the challenger brought. It must be deterministic. An error
// says that the payload does not allow an answer, and the challenger loses.
type Referee interface {
	// Parts is the number of parts in which the output of the operator of a claim is made, for Tile, or the payload of
	// its parameter, for Update, or the carried state of that parameter, for Carry.
	Parts(c Claim) uint64
	// Judge answers a question.
	Judge(c Claim, payload []byte) (Ruling, error)
}
