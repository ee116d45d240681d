"""What customers say of an earlier talk: words that name a thing of then, and words that name none."""

from __future__ import annotations

THINGS = (
    "上次问的那个", "上次我问的那件", "之前问的那个", "我之前问过的那个", "上回问的", "跟上次一样的",
    "还是上次那个问题", "我上次聊的那个商品", "上次说的那件", "那上次的呢", "昨天看的那款", "之前的订单",
    "the one I asked about last time", "the one i asked about before", "the item from my last chat",
    "what I asked about before", "same thing as last time", "the same as before", "same order as last time",
    "the thing we talked about last time", "the order I asked about last week", "that one from last time",
    "it's about the one I asked about last time", "I mean the order we discussed previously",
    "about my previous question", "what about the one from our last conversation?", "the one I mentioned earlier",
    "the order from our previous conversation", "the one I told you about two days ago", "the previous order please",
)  # fmt: skip
NO_THING = (
    "last time you were rude", "last time it took forever", "last time was bad", "this is the last time I order here",
    "the last time I called, nobody helped me", "we talked last time", "I have asked before", "what did I ask before",
    "you told me last time it was free", "why was it cheaper last time", "last time I paid less",
    "the staff I talked to last time was nice", "what I asked for was an answer", "same day delivery?",
    "what I said before is still true", "next time I will ask", "thank you for last time", "my last chat was terrible",
    "上次客服没有回我", "我之前问过", "上次比较便宜", "这是我最后一次来", "上次跟我聊的那个人是谁", "之前说的话还算数",
    "以前都可以的", "上次谢谢你",
)  # fmt: skip
