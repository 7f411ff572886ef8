package dispute

import (
	"fmt"
	"slices"
)

// Event is the kind of a Record.
type Event uint8

// The events are part of the format. The comment says which fields a record of the event has.
const (
	Opened      Event = 1  // Index: of the first committed root that differs
	ShownSteps  Event = 2  // Count: states shown between steps From and To
	PickedStep  Event = 3  // To: the step after which the first state differs
	ShownTree   Event = 4  // Count: nodes shown of the tree
	PickedNode  Event = 5  // From, To: the first and the last leaf below the node
	ShownNodes  Event = 6  // Count: nodes shown below the picked one
	PickedLeaf  Event = 7  // Index: of the leaf; Count: parts it is made in
	ShownParts  Event = 8  // Index: of the leaf; Count: states shown between parts From and To
	PickedParts Event = 9  // From, To: the first and the last part in which the first difference is
	Pointed     Event = 10 // Index: of the parameter; From: the part of its update that is not finite
	Judged      Event = 11 // the Verdict has the rest
	Late        Event = 12 // To: the deadline that passed
	Moot        Event = 13 // the question was settled otherwise
	WasPlanted  Event = 14 // the asserter had planted the fault
)

// Record is a move, or the end of a dispute. It is part of the state of the chain and holds no words: Dispute.Text
// makes them.
type Record struct {
	Height int64  `cbor:"1,keyasint"`
	Party  Party  `cbor:"2,keyasint"`
	Event  Event  `cbor:"4,keyasint"`
	Index  uint32 `cbor:"5,keyasint,omitzero"`
	From   uint64 `cbor:"6,keyasint,omitzero"`
	To     uint64 `cbor:"7,keyasint,omitzero"`
	Count  uint64 `cbor:"8,keyasint,omitzero"`
}

// record returns the game with one more record.
func (g Dispute) record(height int64, by Party, r Record) Dispute {
	r.Height, r.Party = height, by
	g.Log = append(slices.Clip(g.Log), r)
	return g
}

// Names names the recomputed subject: the operator of a program, for Tile, or the tensor of an update or of a carried
// state. It is empty for a subject without a name.
type Names func(k Kind, index uint32) string

// Text says in one line what a record of the game is about. names may be nil.
func (g Dispute) Text(r Record, names Names) string {
	switch r.Event {
	case Opened:
		return openedText(g, r.Index)
	case ShownSteps:
		return fmt.Sprintf("shows %d states between step %d and step %d", r.Count, r.From, r.To)
	case PickedStep:
		return fmt.Sprintf("the state after step %d is the first that differs", r.To)
	case ShownTree:
		return fmt.Sprintf("shows %s, in %d parts", treeText(g), r.Count)
	case PickedNode:
		return fmt.Sprintf("the first difference is in %s %d to %d", g.thing(), r.From, r.To)
	case ShownNodes:
		return fmt.Sprintf("shows the %d parts below", r.Count)
	case PickedLeaf:
		return fmt.Sprintf("the first difference is in %s %d, made in %d parts", g.thing(), r.Index, r.Count)
	case ShownParts:
		return fmt.Sprintf("shows %d states between part %d and part %d of %s %d", r.Count, r.From, r.To, g.thing(), r.Index)
	case PickedParts:
		return fmt.Sprintf("the first difference is in part %d to %d", r.From, r.To)
	case Pointed:
		return fmt.Sprintf("part %d of the update of parameter %d is not finite", r.From, r.Index)
	case Judged:
		return verdictText(g, names)
	case Late:
		return fmt.Sprintf("the %s made no move by height %d and loses", r.Party, r.To)
	case Moot:
		return "closed: the question was settled otherwise; no stake is lost"
	case WasPlanted:
		return "closed: the worker had planted the fault; no stake is lost"
	}
	return fmt.Sprintf("event %d, which this version does not know", r.Event)
}

func openedText(g Dispute, segment uint32) string {
	switch last := uint32(len(g.Config.Segments)); {
	case segment == 0:
		return "the state at the start differs"
	case segment < last:
		return fmt.Sprintf("the state after segment %d of %d differs", segment, last-1)
	case segment == last:
		return "the update differs"
	}
	return "the carried state differs"
}

func treeText(g Dispute) string {
	switch {
	case g.aboutCarried():
		return fmt.Sprintf("the carried state of %d tensors", g.Tree.Leaves)
	case g.aboutUpdate():
		return fmt.Sprintf("the update of %d parameters", g.Tree.Leaves)
	}
	return fmt.Sprintf("the outputs of the %d operators of step %d", g.Tree.Leaves, g.Steps.To)
}

// verdictText says the ruling of the referee.
func verdictText(g Dispute, names Names) string {
	v := g.Verdict
	if v == nil {
		return "the referee is asked"
	}
	subject := subjectText(g, names)
	switch {
	case v.Reason == BadLeaf:
		return "the verifier did not bring what " + subject + " is recomputed from, and loses"
	case v.Computed.IsZero() && v.Claimed.IsZero() && v.AsserterLies:
		return subject + " is finite, the worker claims that it is not"
	case v.Computed.IsZero() && v.Claimed.IsZero():
		return subject + " is not finite, as the worker claims"
	case v.Computed.IsZero():
		return subject + " cannot be made, the worker claims " + v.Claimed.Short()
	case v.AsserterLies:
		return fmt.Sprintf("%s is %s, the worker claims %s", subject, v.Computed.Short(), v.Claimed.Short())
	}
	return fmt.Sprintf("%s is %s, as the worker claims", subject, v.Computed.Short())
}

// subjectText names the recomputed part.
func subjectText(g Dispute, names Names) string {
	v, kind, name := g.Verdict, Kind(g.Verdict.Leaf), ""
	if names != nil {
		name = names(kind, v.Operator)
	}
	numbered := func(thing string) string {
		if name == "" {
			return fmt.Sprintf("%s %d", thing, v.Operator)
		}
		return fmt.Sprintf("%s %d (%s)", thing, v.Operator, name)
	}
	switch kind {
	case Start:
		return "the state at the start"
	case Binding:
		return fmt.Sprintf("the state that the outputs of step %d make", g.Steps.To)
	case Tile:
		return fmt.Sprintf("part %d of %s of step %d", v.Part, numbered("operator"), g.Steps.To)
	case Carry:
		return fmt.Sprintf("part %d of the carried state of %s", v.Part, numbered("tensor"))
	}
	return fmt.Sprintf("part %d of the payload of %s", v.Part, numbered("parameter"))
}
