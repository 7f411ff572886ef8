// Package loop leads runs of a network by the steps of a client's training loop: each model that a client trains is an
// order, whose rounds wait for the data that the client sends. It is the tinker.Engine of a gateway.
//
// Package order makes what such an order asks for, Session leads its run, and Engine answers clients. Passes without
// gradients, samples and saved weights are computed here, by node/trainer, from the checkpoints of the run.
package loop
