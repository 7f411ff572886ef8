// Package bridged plays two chains between which a relay carries coins by IBC, under random messages and random kills:
// of the application of a validator, whose disk then takes nothing more, and of the relay, which remembers nothing. The
// applications, their stores on disk and the relay (client/bridge) are real; CometBFT is not, and its time is virtual.
// The package has tests only. Random messages of all modules on one chain are played by sim/random.
package bridged
