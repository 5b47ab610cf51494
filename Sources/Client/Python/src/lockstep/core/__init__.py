"""The protocol as values: bytes in, events out; no socket, no clock, no thread.

`Session` is the client's end of a session. A shell (`lockstep.connect`,
`lockstep.connect_blocking`, or one of your own) moves bytes and time for it. The way of a byte:

    frames.FrameDecoder -> messages.read -> session.Session -> subscription.Subscription
        -> patches.apply -> tree.Object, which views.ObjectView shows
"""
