"""The training step of a job in PyTorch: the child process of a worker whose owner enabled `--executor torch`.

A worker starts `python3 -m starling.executor` with three inherited files: requests on 3, replies on 4, and on 5 the memory
that both share. It sends the job's training step, which is a program (a list of operators), and then, for every unit of
work, the state, the batches and the learning rates. `docs/executor.md` has the messages and the layout of the memory.

Without a module of the owner's the operators run one by one in torch, so every model, loss and optimizer that the built-in
engine knows is there. A module may take the step over with a function of this form:

    def step(task, state, batch):
        params = {n: state["p/" + n].detach().requires_grad_() for n in task.params}
        loss = my_loss(params, batch.tokens)
        grads = torch.autograd.grad(loss, [params[n] for n in task.params])
        return task.update(state, batch, loss, dict(zip(task.params, grads)))

`task` is a `Task`, `state` has the float32 tensors `p/NAME` (parameters), `m/NAME` and `v/NAME` (moments of AdamW), and `batch`
is a `Batch`. It returns the loss, in nats, and the state after the step. `task.update` clips the gradients and applies AdamW as
the job says; `task.step(state, batch)` is what happens without a module.
"""
