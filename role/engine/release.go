package engine

// Release drops the checkpoints and the carried states that are held in memory, once no unit is computed, and then
// calls also, which drops more. They are loaded from the store when they are needed again. Executions for open seals
// and disputes stay: they are needed at once.
func (e *Engine) Release(also func()) {
	e.computing.Lock()
	defer e.computing.Unlock()
	e.Recent.Clear()
	e.states.held.Clear()
	also()
}

// Exclusively calls a function while the engine computes no unit: it may use the Exec of the task.
func Exclusively(e *Engine, do func() error) error {
	e.computing.Lock()
	defer e.computing.Unlock()
	return do()
}
