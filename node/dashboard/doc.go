// Package dashboard shows a run or a network by the REST API, from the folder of the run and from the chain. It changes
// neither.
package dashboard
