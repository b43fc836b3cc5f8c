"""The Activity Protocol of Azure Bot Service: tokens, activities, and the base class of its channels."""
