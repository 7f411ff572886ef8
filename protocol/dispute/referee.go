package dispute

import "github.com/starling-network/starling/canon"

// Kind says what is recomputed at the end of a dispute.
type Kind string

// The kinds of last questions. The asserter is right if what is claimed is what follows from what is agreed.
const (
	Start   Kind = "start"   // the state After follows from the checkpoint Base
	Tile    Kind = "tile"    // one tile of the output of operator Index follows from the operators before it in Trace and from the state Prior
	Binding Kind = "binding" // the state After follows from the outputs of all operators, Trace
	Update  Kind = "update"  // the payload of parameter Index follows from the checkpoint Base and the last state, Prior
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
	Tile        uint32       // of the output of the operator
	Output      canon.Digest // what the asserter claims: a leaf of a tensor or of a payload; the root of an output of one tile
}

// Ruling is the answer of a referee.
type Ruling struct {
	Right bool   // the asserter is
	What  string // one line for people
}

// Referee answers the last question from the payload that the challenger brought. It must be deterministic. An error says
// that the payload does not allow an answer, and the challenger loses.
type Referee interface {
	// Tiles is the number of leaves in which the output of an operator is disputed; 1 if it is not cut.
	Tiles(operator uint32) uint32
	// Root is the root of the output of an operator over whose leaves there is a tree with the given root.
	Root(operator uint32, tree canon.Digest) canon.Digest
	// Judge answers a question.
	Judge(c Claim, payload []byte) (Ruling, error)
}
