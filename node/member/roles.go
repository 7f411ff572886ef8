package member

import (
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/verifier"
	"github.com/starling-network/starling/role/worker"
)

// RoleOf is the role of a participant in a run, and the header of its journal, from which it is replayed. Every
// worker plants faults. With strangers set, verifiers audit proactively in idle time; where all parties have one
// owner and one machine, they do not. Random choices are derived from the key of the home, so that a restart makes
// the same choices.
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

// RoleConsumer is the name in journals of the role of the account that ordered the job.
const RoleConsumer = "consumer"
