package member

import (
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/verifier"
	"github.com/starling-network/starling/role/worker"
)

// RoleOf is the role of a participant in a run, and the header of its journal, by which it is played back. Every worker
// plants faults. Among strangers every verifier watches in its spare time; where all parties are one owner's, and on
// one machine, none does. What they choose follows from the key of their home, so that a restart chooses the same.
func RoleOf(h home.Home, r crew.Role, strangers bool, id, job,
	version string) (func(role.Event) []role.Action, journal.Header) {
	header := journal.Header{Role: r.String(), ID: id, Job: job, Version: version, Plants: r == crew.Worker,
		Watches: r == crew.Verifier && strangers}
	return Cast(header, h), header
}

// Cast is the role that a header is about.
func Cast(of journal.Header, h home.Home) func(role.Event) []role.Action {
	switch {
	case of.Role == crew.Verifier.String() && of.Watches:
		return verifier.NewProactive(of.ID, h.Derive("watch")).Step
	case of.Role == crew.Verifier.String():
		return verifier.New(of.ID, h.Derive("watch")).Step
	case of.Plants:
		return worker.NewWithPlantedFaults(of.ID, h.Derive("plant")).Step
	}
	return worker.New(of.ID).Step
}

// RoleConsumer is what journals call the role of who ordered the job.
const RoleConsumer = "consumer"
