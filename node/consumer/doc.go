// Package consumer is the process that ordered a job: it places the order, collects the checkpoints, measures them,
// and writes the folder of the run. It trains nothing and decides no dispute.
package consumer
