package random

import (
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/sim/random/machines"
)

// invite lets an account invite a machine.
func invite(x *msgFactory) error {
	return x.Registry.Invite(x.ctx, machines.Invitation(x.Source, x.ctx.BlockHeight()))
}

// enrol lets an account use an invitation.
func enrol(x *msgFactory) error {
	m, err := machines.Admission(x.ctx, x.Source, x.Registry, chainID, x.Address())
	if err == nil {
		_, err = x.Submit(x.ctx, m)
	}
	return err
}

// machine makes a message of an owner about a machine or an invitation.
func machine(say func(*msgFactory, registry.Participant) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		all, err := x.Registry.Participants(x.ctx)
		if err != nil {
			return err
		}
		return untilSaid(x, all, func(p registry.Participant) error {
			if p.Machine.Owner == "" || p.Machine.Revoked > 0 || !x.as(p.Machine.Owner) {
				return nil
			}
			return say(x, p)
		})
	}
}
