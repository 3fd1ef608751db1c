"""Those who stop to listen before the answer's end."""
import asyncio

import pytest
import util


async def cancel(server, read):
    """Ends the task `read(begun)`, which sets `begun` once it hears something; nothing runs on for it."""
    begun = asyncio.Event()
    task = asyncio.create_task(read(begun))
    await asyncio.wait_for(begun.wait(), util.PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(server.wait_rows)
