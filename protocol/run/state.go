// Package run is the life of one training job as a pure state machine: its members, which member has which unit, what
// was committed, audited and disputed, and which checkpoints a quorum attested.
//
// Rounds are attested at the pace of training. Their audits and challenges continue while later rounds are trained; any
// account may challenge. A verdict against work that later rounds built on rolls the run back to the round of that
// work. A round is final, and paid, when nothing is open about it.
//
// Members may leave and join during the run: Leave, Join and Return. A member that joins counts only after its
// probation (probation.go).
//
// A run (Phase). A round goes through Assign to Attest while earlier rounds are audited:
//
//	          beacon             last commitment     quorum
//	Assign ------------> Train ----------------> Attest ----> Assign of the next round
//	  ^                    ^  \                ^    |
//	  |  window is full:   |   \ with slices   /     | last round
//	  |  wait              |    +--> Reduce --+      v
//	  |                    |                       Settle --------> Done
//	  +---- rollback: a verdict against a worker ----+    every round is final
//
//	any phase ---> Halted: no worker is left, most declined, the budget is spent, or it diverged (State.Why)
//
// A unit (Status). Another attempt gets another number (UnitID.Attempt):
//
//	            Commit             not drawn
//	Assigned ----------> Committed ----------------------------> Accepted ---> round is final: paid
//	 ^    ^                 | drawn                                ^  |
//	 |    |                 v          Pass           Unseal       |  | Challenge, by any account
//	 |    |              Auditing ----------> Sealed --------------+  |
//	 |    |                 | Challenge         | Challenge           |
//	 |    |                 v                   v                     |
//	 |    +---------------- Disputed <----------+---------------------+
//	 |   the worker lied:     | the work is right, or the fault was planted
//	 |   slashed, rollback    +--> Accepted, or Auditing by another verifier
//	 |
//	 +-- a deadline passed, Confess, or most miss the update: another worker, no slash
//
// The messages (Commit, Pass, Challenge, Verdict, Missing, SealSlice, ShowSlice, Attest and others) and Tick, which
// follows them once a block, are functions of (state, message, environment): no clock, no random source, no I/O,
// integers only. None changes its receiver; a refused message gives the old state back. The chain executes them inside
// a block, the simulator under virtual time. The package knows nothing of coins (reward, market), of tensors (compute)
// or of how a dispute is decided (dispute).
package run

import (
	"github.com/starling-network/starling/protocol/run/progress"
)

// State is a run between two messages, which the messages change.
type State struct{ progress.Progress }
